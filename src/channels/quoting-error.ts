import { type ErrorCode, SwitchboardError } from '../errors.ts';

/** So much of a text is kept until the secrets in it are masked. */
const MAX_KEPT = 8 * 1024;

/**
 * An error that ends in what a server said. It is cut only when the secrets in it are masked: where a cut went through a
 * secret, nobody would know what is left of it.
 */
export class QuotingError extends SwitchboardError {
  private readonly statement: string;
  private readonly quote: string;
  private readonly shown: number;

  constructor(
    code: ErrorCode,
    text: { statement: string; quote: string; shown: number },
    data: Record<string, unknown>,
  ) {
    const quote = text.quote.slice(0, MAX_KEPT);
    super(code, `${text.statement}${quote}`, { data });
    this.statement = text.statement;
    this.quote = quote;
    this.shown = text.shown;
  }

  /** The same error without secrets, and with no more of the quote than is to be shown. */
  masked(mask: (text: string) => string): SwitchboardError {
    const quote = mask(this.quote);
    const shown = quote.length > this.shown ? `${quote.slice(0, this.shown)} …` : quote;
    return new SwitchboardError(this.code, `${mask(this.statement)}${shown}`, { data: this.data });
  }
}
