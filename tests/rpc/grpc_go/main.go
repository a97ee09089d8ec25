// Either end of a few gRPC calls with raw bytes as messages, for the tests of garboard.rpc: a peer made of grpc-go.
//
//	grpc_go serve                      prints its port, then answers
//	grpc_go call ADDRESS COUNT SIZE    checks every method of the service at ADDRESS
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

type raw struct{}

func (raw) Marshal(value any) ([]byte, error)      { return *value.(*[]byte), nil }
func (raw) Unmarshal(data []byte, value any) error { *value.(*[]byte) = bytes.Clone(data); return nil }
func (raw) Name() string                           { return "raw" }

var bidirectional = &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}

func main() {
	if os.Args[1] == "serve" {
		serve()
		return
	}
	count, size := number(os.Args[3]), number(os.Args[4])
	connection, err := grpc.NewClient(os.Args[2],
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(raw{})),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, PermitWithoutStream: true}))
	check(err)
	ctx, cancel := context.WithTimeout(context.Background(), 120*time.Second)
	defer cancel()
	checkUnary(ctx, connection)
	checkChat(ctx, connection, count, size)
	checkFlood(ctx, connection, count, size)
	checkFailures(ctx, connection)
	fmt.Println("all good")
}

func checkUnary(ctx context.Context, connection *grpc.ClientConn) {
	ctx = metadata.AppendToOutgoingContext(ctx, "k-bin", "\x00\xff")
	request, answer := []byte("hi"), []byte{}
	var header, trailer metadata.MD
	check(connection.Invoke(ctx, "/Test/Echo", &request, &answer, grpc.Header(&header), grpc.Trailer(&trailer)))
	expect(string(answer) == "echo:hi", "echo said %q", answer)
	expect(header["k-bin"][0] == "\x00\xff" && trailer["k-bin"][0] == "\x00\xff", "metadata %v %v", header, trailer)
}

// Every message comes back while more are sent.
func checkChat(ctx context.Context, connection *grpc.ClientConn, count, size int) {
	stream, err := connection.NewStream(ctx, bidirectional, "/Test/Chat")
	check(err)
	go func() {
		for i := range count {
			message := bytes.Repeat([]byte{byte(i)}, size)
			check(stream.SendMsg(&message))
		}
		check(stream.CloseSend())
	}()
	for i := range count {
		var message []byte
		check(stream.RecvMsg(&message))
		expect(len(message) == size && message[0] == byte(i), "message %d is wrong", i)
	}
	var message []byte
	expect(errors.Is(stream.RecvMsg(&message), io.EOF), "no end")
}

// Messages in one direction as fast as they go, which is when grpc-go measures with PINGs.
func checkFlood(ctx context.Context, connection *grpc.ClientConn, count, size int) {
	stream, err := connection.NewStream(ctx, bidirectional, "/Test/Flood")
	check(err)
	order := []byte(fmt.Sprintf("%d %d", 4*count, size))
	check(stream.SendMsg(&order))
	check(stream.CloseSend())
	for range 4 * count {
		var message []byte
		check(stream.RecvMsg(&message))
		expect(len(message) == size, "a message of %d bytes", len(message))
	}
}

func checkFailures(ctx context.Context, connection *grpc.ClientConn) {
	request, answer := []byte{}, []byte{}
	err := connection.Invoke(ctx, "/Test/Fail", &request, &answer)
	expect(status.Code(err) == codes.FailedPrecondition && status.Convert(err).Message() == "not now: é %", "%v", err)
	err = connection.Invoke(ctx, "/Test/Unknown", &request, &answer)
	expect(status.Code(err) == codes.Unimplemented, "%v", err)
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	err = connection.Invoke(short, "/Test/Slow", &request, &answer)
	expect(status.Code(err) == codes.DeadlineExceeded, "%v", err)
}

func serve() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	server := grpc.NewServer(grpc.ForceServerCodec(raw{}), grpc.UnknownServiceHandler(answer))
	go func() {
		_, _ = io.ReadAll(os.Stdin)
		server.Stop()
	}()
	check(server.Serve(listener))
}

func answer(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	switch method {
	case "/Test/Echo":
		return echo(stream)
	case "/Test/Chat":
		return chat(stream)
	case "/Test/Fail":
		return status.Error(codes.FailedPrecondition, "not now: é %")
	case "/Test/Slow":
		<-stream.Context().Done()
		return stream.Context().Err()
	}
	return status.Error(codes.Unimplemented, method)
}

func echo(stream grpc.ServerStream) error {
	incoming, _ := metadata.FromIncomingContext(stream.Context())
	given := metadata.MD{"k-bin": incoming["k-bin"]}
	check(stream.SendHeader(given))
	stream.SetTrailer(given)
	var message []byte
	if err := stream.RecvMsg(&message); err != nil {
		return err
	}
	message = append([]byte("echo:"), message...)
	return stream.SendMsg(&message)
}

func chat(stream grpc.ServerStream) error {
	for {
		var message []byte
		if err := stream.RecvMsg(&message); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if err := stream.SendMsg(&message); err != nil {
			return err
		}
	}
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func expect(holds bool, format string, values ...any) {
	if !holds {
		log.Fatalf(format, values...)
	}
}
