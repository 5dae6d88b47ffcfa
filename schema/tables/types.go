package tables

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/apd/v3"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// RegisterTypes lets statements on the connection take apd.Decimal and
// *apd.Decimal as a parameter of type numeric, and scan a numeric into
// *apd.Decimal (**apd.Decimal where it may be null), and the same for numeric[].
// Each digit and the scale are kept. It is for AfterConnect of a pool.
func RegisterTypes(conn *pgx.Conn) {
	m := conn.TypeMap()
	numeric := &pgtype.Type{Name: "numeric", OID: pgtype.NumericOID, Codec: numericCodec{}}
	m.RegisterType(numeric)
	m.RegisterType(&pgtype.Type{
		Name: "_numeric", OID: pgtype.NumericArrayOID, Codec: &pgtype.ArrayCodec{ElementType: numeric},
	})
}

// numericCodec is pgx's own but for decimals.
type numericCodec struct{ pgtype.NumericCodec }

func (c numericCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	switch value.(type) {
	case apd.Decimal, *apd.Decimal:
		return encodeDecimal{text: format == pgtype.TextFormatCode}
	}
	return c.NumericCodec.PlanEncode(m, oid, format, value)
}

func (c numericCodec) PlanScan(m *pgtype.Map, oid uint32, format int16, target any) pgtype.ScanPlan {
	if _, ok := target.(*apd.Decimal); ok && format == pgtype.BinaryFormatCode {
		return scanDecimal{}
	}
	return c.NumericCodec.PlanScan(m, oid, format, target)
}

// encodeDecimal also encodes as text, since pgx tries text where binary gave an
// error: what does not fit must not fit either way.
type encodeDecimal struct{ text bool }

func (e encodeDecimal) Encode(value any, buf []byte) ([]byte, error) {
	d, ok := value.(*apd.Decimal)
	if v, byValue := value.(apd.Decimal); byValue {
		d, ok = &v, true
	}
	switch {
	case !ok:
		return nil, fmt.Errorf("tables: encode %T as numeric", value)
	case d == nil:
		return nil, nil
	}
	n := len(buf)
	buf, err := AppendNumeric(buf, d)
	if err != nil {
		return nil, err
	}
	if e.text {
		buf = d.Append(buf[:n], 'f')
	}
	return buf, nil
}

type scanDecimal struct{}

func (scanDecimal) Scan(src []byte, target any) error {
	if src == nil {
		return errors.New("tables: scan a null numeric into *apd.Decimal: use **apd.Decimal")
	}
	return decodeNumeric(target.(*apd.Decimal), src)
}
