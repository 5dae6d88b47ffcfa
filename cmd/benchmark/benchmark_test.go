//go:build unix

package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// The table has the medians of the rounds, by contender and figure, and of ratios
// those within a round.
func TestMedians(t *testing.T) {
	t.Parallel()
	r := &report{}
	for round, rate := range []float64{30, 10, 20} {
		r.Throughput = append(r.Throughput,
			figures{Contender: "naive", Round: round, Rate: rate / 10, Memory: int64(rate)},
			figures{Contender: "insert", Round: round, Rate: rate, Server: 100 - rate})
	}
	got := r.medians()
	if len(got) != 2 || got[0].Contender != "insert" || got[0].Rate != 20 || got[0].Server != 80 || got[1].Rate != 2 || got[1].Memory != 20 {
		t.Errorf("medians %+v", got)
	}
	var out bytes.Buffer
	r.writeThroughput(&out)
	if !strings.Contains(out.String(), "0.10") {
		t.Errorf("the ratio of naive to insert is missing:\n%s", out.String())
	}
}

// The picture is well-formed, shows each rate, and leaves consuming out.
func TestDrawBars(t *testing.T) {
	t.Parallel()
	svg := drawBars([]figures{{Contender: "insert", Rate: 61_234}, {Contender: "a<b", Rate: 999}, {Contender: "consume", Rate: 1e6}}, "here & now")
	for decoder := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"61,234", ">999<", "a&lt;b", "here &amp; now"} {
		if !strings.Contains(svg, want) {
			t.Errorf("%q is missing in\n%s", want, svg)
		}
	}
	if strings.Contains(svg, ">consume<") {
		t.Error("consuming alone is drawn")
	}
}

// What is asked for and cannot be is refused with its name.
func TestOptions(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"--parts throughput,speed": `there is no "speed"`,
		"--only insert,peer":       `no contender "peer"`,
		"--rounds 0":               "must be positive",
		"again":                    `no arguments are taken (got ["again"])`,
	} {
		if _, err := parseOptions(strings.Fields(args), io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}

// The CPU time of a child that has ended is found in its parent's account, which
// is why a backend that ends between two looks is not lost.
func TestServerTime(t *testing.T) {
	if runtime.GOOS != "linux" {
		if _, err := readProcess(os.Getpid()); err == nil {
			t.Error("there is no /proc, and it was read")
		}
		return
	}
	before, err := serverTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	after, err := serverTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if child := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(); after-before < child-2*tick {
		t.Errorf("the child used %v, seen were %v", child, after-before)
	}
}

// A payment becomes the bytes of COPY's binary format, whose lengths add up.
func TestAppendRow(t *testing.T) {
	t.Parallel()
	value := `{"event_id":"01890a5d-ac96-774b-bcce-b302099a8057","customer_id":42,"amount":12.50,"currency":"EUR","method":"card","created_at":"2000-01-01T00:00:01Z"}`
	p, err := decodePayment(t.Context(), paymentDecoder(), &kgo.Record{Value: []byte(value), Offset: 7})
	if err != nil {
		t.Fatal(err)
	}
	row, err := p.appendRow(nil)
	if err != nil {
		t.Fatal(err)
	}
	var cells [][]byte
	for rest := row[2:]; len(rest) > 0; {
		n := int(rest[3])
		cells, rest = append(cells, rest[4:4+n]), rest[4+n:]
	}
	if len(cells) != 6 || !bytes.Equal(cells[0], p.id[:]) || cells[1][7] != 42 || string(cells[3]) != "EUR" || string(cells[4]) != "card" {
		t.Errorf("cells %q", cells)
	}
	if micros := time.Second.Microseconds(); !bytes.Equal(cells[5], []byte{0, 0, 0, 0, 0, byte(micros >> 16), byte(micros >> 8 & 0xff), byte(micros & 0xff)}) {
		t.Errorf("the time is %x", cells[5])
	}
	if key := p.appendKey(nil, 3); len(key) != 2+5*4+16+8+8+4+2 || key[len(key)-7] != 3 {
		t.Errorf("the key's row is %x", key)
	}
}

// Workers share the partitions, each once.
func TestShare(t *testing.T) {
	t.Parallel()
	seen := map[int32]int{}
	for w := range 3 {
		for _, p := range share(8, w, 3) {
			seen[p]++
		}
	}
	for p := range int32(8) {
		if seen[p] != 1 {
			t.Errorf("partition %d is read %d times", p, seen[p])
		}
	}
}
