package processor

import "context"

// VerifyForgetful is Verify with the guard of the keys broken: the range comes
// again under another handler, to which each key is new.
func (p *Processor) VerifyForgetful(ctx context.Context, r Range, opts VerifyOptions) (Verdict, error) {
	v := &verification{p: p, opts: opts, againUnder: "/forgetful"}
	return v.verify(ctx, r)
}
