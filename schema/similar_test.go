package schema_test

import (
	"slices"
	"testing"

	"github.com/oncestream/oncestream/schema"
)

// A typing error finds the name that was meant; a name that is like none finds
// none.
func TestNearest(t *testing.T) {
	t.Parallel()
	names := []string{"add", "amount", "customer_id", "key", "table", "", "id"}
	for name, want := range map[string]string{
		"ad": "add", "amout": "amount", "AMOUNT": "amount", "custmer_id": "customer_id",
		"tabel": "table", "kye": "key", "zebra": "", "x": "", "ix": "id", "": "",
	} {
		if got := schema.Nearest(name, names); got != want {
			t.Errorf("nearest to %q is %q, want %q", name, got, want)
		}
	}
}

// All that are near come, the nearest first, and equal ones in their order.
func TestSimilar(t *testing.T) {
	t.Parallel()
	got := schema.Similar("orders", []string{"order-events", "orderz2", "order", "Orders", "borders", "payments"})
	if want := []string{"Orders", "order", "borders", "orderz2"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
