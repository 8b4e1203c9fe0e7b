"""Text of files: PDF, Word, Excel, PowerPoint, HTML and plain text, extracted in worker processes."""
