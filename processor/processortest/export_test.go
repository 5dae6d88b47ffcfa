//go:build unix

package processortest

// PublishedHost is where tests reach the ports of containers of their own.
var PublishedHost = publishedHost
