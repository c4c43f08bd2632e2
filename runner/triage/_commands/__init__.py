"""The commands of the demonstration. They come to `refold` by entry points, as those of any package may."""
