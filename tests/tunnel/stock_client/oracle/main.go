// A client of a proxy server's front end, made of the stock client library: one action, told in lines.
package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"io"
	"math/rand"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"sigs.k8s.io/apiserver-network-proxy/konnectivity-client/pkg/client"
)

var (
	front  = flag.String("front", "", "unix socket of the front end, or with -ca its host:port")
	ca     = flag.String("ca", "", "authority of the front end's certificate")
	cert   = flag.String("cert", "", "client certificate for it")
	key    = flag.String("key", "", "its key")
	mode   = flag.String("mode", "grpc", "grpc or http-connect")
	to     = flag.String("to", "", "destination")
	do     = flag.String("do", "get", "get, echo, hold, dial, read")
	path   = flag.String("path", "/", "what get asks for")
	count  = flag.Int("count", 1, "how many at once")
	quick  = flag.Int64("quick", 0, "bytes that read takes as they come")
	rate   = flag.Int64("rate", 0, "bytes a second that it takes after those; 0 is without a limit")
	slow   = flag.Duration("slow", 0, "for how long it takes no more than that")
	dialIn = flag.Duration("dial-in", 30*time.Second, "time for the dial; negative is over already; 0 is random")
	liveIn = flag.Duration("live-in", time.Minute, "time for the whole tunnel")
)

func tlsConfig() *tls.Config {
	pem, err := os.ReadFile(*ca)
	if err != nil {
		panic(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	config := &tls.Config{RootCAs: roots}
	if *cert != "" {
		pair, err := tls.LoadX509KeyPair(*cert, *key)
		if err != nil {
			panic(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config
}

func frontEnd() (string, credentials.TransportCredentials) {
	if *ca == "" {
		return "unix:" + *front, insecure.NewCredentials()
	}
	return *front, credentials.NewTLS(tlsConfig())
}

func dialFront() (net.Conn, error) {
	if *ca == "" {
		return net.Dial("unix", *front)
	}
	return tls.Dial("tcp", *front, tlsConfig())
}

func dialTunnel(tunnelCtx, dialCtx context.Context) (net.Conn, error) {
	if *mode == "grpc" {
		address, security := frontEnd()
		tunnel, err := client.CreateSingleUseGrpcTunnelWithContext(context.Background(), tunnelCtx, address,
			grpc.WithTransportCredentials(security))
		if err != nil {
			return nil, err
		}
		return tunnel.DialContext(dialCtx, "tcp", *to)
	}
	conn, err := dialFront()
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", *to)
	reader := bufio.NewReader(conn)
	answer, err := http.ReadResponse(reader, nil)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != 200 {
		text, _ := io.ReadAll(answer.Body)
		return nil, fmt.Errorf("%s: %s", answer.Status, text)
	}
	if reader.Buffered() > 0 {
		return nil, fmt.Errorf("%d bytes came glued to the answer", reader.Buffered())
	}
	return conn, nil
}

func dial() (net.Conn, error) {
	tunnelCtx, _ := context.WithTimeout(context.Background(), *liveIn)
	wait := *dialIn
	if wait == 0 {
		wait = time.Duration(rand.Intn(20_000)) * time.Microsecond
	}
	dialCtx, _ := context.WithTimeout(context.Background(), wait)
	return dialTunnel(tunnelCtx, dialCtx)
}

func get() string {
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return dial() }}
	answer, err := (&http.Client{Transport: transport}).Get("http://" + *to + *path)
	if err != nil {
		return "error " + err.Error()
	}
	defer transport.CloseIdleConnections()
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return "error " + err.Error()
	}
	return fmt.Sprintf("%d %d %x", answer.StatusCode, len(body), sha256.Sum256(body))
}

func echo(conn net.Conn) error {
	want := "1234567890123456789012345"
	if _, err := conn.Write([]byte(want)); err != nil {
		return err
	}
	got := ""
	for part := make([]byte, 10); len(got) < len(want); {
		n, err := conn.Read(part)
		if err != nil {
			return err
		}
		got += string(part[:n])
	}
	if got != want {
		return fmt.Errorf("%q came back", got)
	}
	return nil
}

// Everything up to the end, for a while at a limited rate as by an API server whose own client is slow.
func read(conn net.Conn) string {
	var got int64
	var slowSince time.Time
	conn.Write([]byte("begin")) // a stock client loses what comes at once with the answer to its dial
	for part := make([]byte, 16384); ; {
		n, err := conn.Read(part)
		got += int64(n)
		if err == io.EOF {
			return fmt.Sprintf("%d bytes", got)
		}
		if err != nil {
			return fmt.Sprintf("error after %d bytes: %v", got, err)
		}
		if got < *quick || *rate == 0 {
			continue
		}
		if slowSince.IsZero() {
			slowSince = time.Now()
		}
		if time.Since(slowSince) < *slow {
			time.Sleep(time.Duration(int64(n) * int64(time.Second) / *rate))
		}
	}
}

func act() string {
	if *do == "get" {
		return get()
	}
	conn, err := dial()
	if err != nil {
		return "error " + err.Error()
	}
	defer conn.Close()
	if *do == "dial" {
		return "connected"
	}
	if *do == "read" {
		return read(conn)
	}
	if err := echo(conn); err != nil {
		return "error " + err.Error()
	}
	if *do == "hold" {
		fmt.Println("open")
		conn.Read(make([]byte, 1))
		return "closed"
	}
	return "echoed"
}

func main() {
	flag.Parse()
	var all sync.WaitGroup
	lines := make(chan string, *count)
	for i := 0; i < *count; i++ {
		all.Add(1)
		go func() { defer all.Done(); lines <- act() }()
	}
	all.Wait()
	close(lines)
	for line := range lines {
		fmt.Fprintln(os.Stdout, line)
	}
}
