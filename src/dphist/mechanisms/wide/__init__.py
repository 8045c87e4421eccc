"""Tables of few attributes out of very many: which residuals and ranges are worth what, and models fitted to them."""
