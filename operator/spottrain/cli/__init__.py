"""`spottrain`: what people type. It reads the store with their own credentials, and needs no cluster."""
