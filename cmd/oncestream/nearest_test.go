package main

import "testing"

// A typing error finds the name that was meant; a name that is like none finds
// none.
func TestNearest(t *testing.T) {
	names := []string{"add", "amount", "customer_id", "key", "table"}
	for name, want := range map[string]string{
		"ad": "add", "amout": "amount", "AMOUNT": "amount", "custmer_id": "customer_id",
		"tabel": "table", "kye": "key", "zebra": "", "x": "",
	} {
		if got := nearest(name, names); got != want {
			t.Errorf("nearest to %q is %q, want %q", name, got, want)
		}
	}
}
