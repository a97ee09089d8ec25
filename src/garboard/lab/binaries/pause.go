// Command pause holds a set of namespaces open: it waits for a signal and reaps the processes that are left to it.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

var version = "unknown"

func main() {
	if len(os.Args) > 1 && (os.Args[1] == "-v" || os.Args[1] == "--version") {
		fmt.Println("pause " + version)
		return
	}
	signals := make(chan os.Signal, 64)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for {
		reap()
		if received := <-signals; received != syscall.SIGCHLD {
			os.Exit(0)
		}
	}
}

func reap() {
	for {
		child, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if child <= 0 || err != nil {
			return
		}
	}
}
