"""Material that needs no download, and is generated where it can be: small images, text that Python ships."""
