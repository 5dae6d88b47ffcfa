package torture

import (
	_ "embed" // for the page
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/oncestream/oncestream/processor/processortest/check"
)

// ReportFile is the name of the report in a run's folder.
const ReportFile = "report.html"

//go:embed report.html
var reportPage string

// row is a line of the table of faults.
type row struct {
	Fault
	Made, Hit int
	Why       string // it was not made
}

// WriteReport writes the run as a page: what was done when, how the work went,
// and what came of each invariant. The page needs nothing but itself.
func (r Result) WriteReport(w io.Writer) error {
	page, err := template.New("report").Funcs(template.FuncMap{"clock": clockText}).Parse(reportPage)
	if err == nil {
		err = page.Execute(w, map[string]any{
			"Options": r.Options.String(), "Run": r.History.Run, "Verdicts": r.Verdicts, "Held": len(check.Violated(r.Verdicts)) == 0,
			"Rows": r.rows(), "Missed": strings.Join(r.Missed(), ", "), "Picture": newPicture(r.History), "Records": len(r.History.Records),
		})
	}
	if err != nil {
		return fmt.Errorf("torture: the report: %w", err)
	}
	return nil
}

func clockText(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format("15:04:05")
}

// rows are the faults, made or not.
func (r Result) rows() []row {
	var rows []row
	for _, f := range Faults() {
		line := row{Fault: f, Why: r.NotRun[f.Name]}
		for _, made := range r.History.Faults {
			if made.Kind == f.Name {
				line.Made++
				if made.Struck {
					line.Hit++
				}
			}
		}
		if line.Made == 0 && line.Why == "" {
			line.Why = "its turn never came"
		}
		rows = append(rows, line)
	}
	slices.SortStableFunc(rows, func(a, b row) int { return a.Row - b.Row })
	return rows
}

// The picture's measures, in its own units.
const (
	pictureWidth = 1000
	curveHeight  = 120
	barHeight    = 14
)

// picture is the run over time: two curves, and a bar for each fault.
type picture struct {
	Width, Height    int
	CurveHeight      int
	Speed, Lag       string // the points of a polyline
	MostSpeed        int64
	MostLag          int64
	Bars             []bar
	Lanes            []pictureLane
	Healed           int
	Seconds, BarFrom int
}

// pictureLane is the line of one kind of fault.
type pictureLane struct {
	Name string
	Y    int
}

// bar is a fault in the picture.
type bar struct {
	X, Y, Width int
	Text        string
	Struck      bool
}

func newPicture(h *check.History) picture {
	p := picture{Width: pictureWidth, CurveHeight: curveHeight, BarFrom: 2*curveHeight + 60}
	end := h.Run.Drained
	if end.IsZero() {
		end = h.Run.Healed.Add(h.Run.Limit)
	}
	for _, s := range h.Samples {
		if s.At.After(end) {
			end = s.At
		}
	}
	whole := max(end.Sub(h.Run.Began), time.Second)
	p.Seconds = int(whole.Seconds())
	x := func(t time.Time) int { return int(int64(pictureWidth) * int64(t.Sub(h.Run.Began)) / int64(whole)) }
	p.Healed = x(h.Run.Healed)
	p.curves(h.Samples, x)
	for _, f := range h.Faults {
		lane := slices.IndexFunc(p.Lanes, func(l pictureLane) bool { return l.Name == f.Kind })
		if lane < 0 {
			lane = len(p.Lanes)
			p.Lanes = append(p.Lanes, pictureLane{f.Kind, p.BarFrom + lane*(barHeight+4)})
		}
		p.Bars = append(p.Bars, bar{
			X: x(f.At), Y: p.Lanes[lane].Y, Width: max(3, x(f.At.Add(f.For))-x(f.At)),
			Text: fmt.Sprintf("%s at %s for %v: %s", f.Kind, clockText(f.At), f.For.Round(time.Millisecond), f.Detail), Struck: f.Struck,
		})
	}
	p.Height = p.BarFrom + len(p.Lanes)*(barHeight+4) + 30
	return p
}

// curves draws how many records were handled in a second, and how many were left.
func (p *picture) curves(samples []check.Sample, x func(time.Time) int) {
	speeds := make([]int64, len(samples))
	for i, s := range samples {
		if i > 0 {
			if took := s.At.Sub(samples[i-1].At); took > 0 {
				speeds[i] = max(0, (s.Handled-samples[i-1].Handled)*int64(time.Second)/int64(took))
			}
		}
		p.MostSpeed, p.MostLag = max(p.MostSpeed, speeds[i]), max(p.MostLag, s.Lag)
	}
	var speed, lag strings.Builder
	y := func(n, most int64) int64 { return curveHeight - curveHeight*max(0, n)/max(1, most) }
	for i, s := range samples {
		fmt.Fprintf(&speed, "%d,%d ", x(s.At), y(speeds[i], p.MostSpeed))
		fmt.Fprintf(&lag, "%d,%d ", x(s.At), y(s.Lag, p.MostLag))
	}
	p.Speed, p.Lag = speed.String(), lag.String()
}
