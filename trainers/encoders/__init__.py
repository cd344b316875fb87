"""From text to vectors: backbones, tokens, packing, readouts, and encoders as folders on disk."""
