package torture

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
)

// Proves that a link passes bytes both ways, that while there is an obstacle what
// was open is reset and what is new is refused, and that it is up again only when
// all obstacles are gone.
func TestKafkaLink(t *testing.T) {
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	go func() { // ends with the listener
		for {
			conn, err := echo.Accept()
			if err != nil {
				return
			}
			go func() { // ends with the connection
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	link, err := newKafkaLink(1)
	if err != nil {
		t.Fatal(err)
	}
	defer link.close()
	if link.leads() {
		t.Error("a link leads somewhere before it was told where to")
	}
	link.lead(func(int) string { return echo.Addr().String() })
	open := says(t, link)
	link.refuse(cutOffObstacle)
	link.refuse(brokerObstacle)
	if _, err := open.Read(make([]byte, 1)); err == nil {
		t.Error("an open connection outlives the link")
	}
	if err := link.accept(brokerObstacle); err != nil {
		t.Fatal(err)
	}
	if _, err := net.Dial("tcp", link.addrs()[0]); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a link that is cut off answers %v", err)
	}
	if err := link.accept(cutOffObstacle); err != nil {
		t.Fatal(err)
	}
	says(t, link)
}

// says sends a byte by the link, and has it back.
func says(t *testing.T, link *kafkaLink) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", link.addrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := conn.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 1)
	if _, err := io.ReadFull(conn, got); err != nil || got[0] != 'x' {
		t.Fatalf("got %q, %v", got, err)
	}
	return conn
}
