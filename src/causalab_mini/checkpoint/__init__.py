"""What a model is without its weights: config, tokenizer, special ids."""
