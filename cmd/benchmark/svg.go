//go:build unix

package main

import (
	"encoding/xml"
	"fmt"
	"strings"
)

// The picture's measures, in its own units.
const (
	barLeft, barWidth, barHeight = 110, 420, 24
	pictureWidth                 = 640
)

// drawBars draws the rates as bars. Consuming alone is left out: beside it all
// others would be one length.
func drawBars(all []figures, caption string) string {
	var shown []figures
	top := 0.0
	for _, f := range all {
		if f.Contender != "consume" {
			shown = append(shown, f)
			top = max(top, f.Rate)
		}
	}
	height := barHeight*len(shown) + 64
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="13">`+"\n",
		pictureWidth, height, pictureWidth, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", pictureWidth, height)
	fmt.Fprintf(&b, `<text x="10" y="22" font-weight="bold">records a second, from the start of consumption to the last row</text>`+"\n")
	for i, f := range shown {
		y := 36 + i*barHeight
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", barLeft-8, y+16, escaped(f.Contender))
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", barLeft, y+3, f.Rate/top*barWidth, barHeight-6, colour(f.Contender))
		fmt.Fprintf(&b, `<text x="%.1f" y="%d">%s</text>`+"\n", barLeft+f.Rate/top*barWidth+6, y+16, thousands(f.Rate))
	}
	fmt.Fprintf(&b, `<text x="10" y="%d" fill="#666666" font-size="11">%s</text>`+"\n</svg>\n", height-10, escaped(caption))
	return b.String()
}

// colour tells the product from what it is compared with.
func colour(name string) string {
	switch name {
	case "ceiling", "copy", "naive":
		return "#b0b7c3"
	default:
		return "#2f6f4f"
	}
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder does not fail
	return b.String()
}

// thousands writes a rate with its thousands apart.
func thousands(rate float64) string {
	n := int64(rate + 0.5)
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(float64(n/1000)), n%1000)
}
