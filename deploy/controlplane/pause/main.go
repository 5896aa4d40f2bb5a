// The process that holds a pod's namespaces open. As the first one in them it also reaps what others leave behind.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	// Ignored by the kernel's own rule: children that end are then reaped at once.
	signal.Ignore(syscall.SIGCHLD)
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	<-ended
}
