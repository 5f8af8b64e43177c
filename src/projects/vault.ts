import type { SealedSecret } from '../store/secrets.ts';
import { encodingsOf } from './encodings.ts';
import { Mask } from './mask.ts';

/** So many values are masked on after they were changed or deleted, */
const MAX_FORMER = 1_000;
/** and so much of them. */
const MAX_FORMER_CHARACTERS = 1_000_000;

/** The secrets of one project. They stay sealed until a server needs one, or a text might show one. */
export class Vault {
  private readonly open: (sealed: SealedSecret) => string;
  private readonly alwaysMasked: readonly string[];
  private sealed = new Map<string, SealedSecret>();
  /** Every value that was opened, the latest last: what was started with an old one may live on, and speak of it. */
  private readonly opened = new Set<string>();
  private mask: Mask | undefined;

  /** `alwaysMasked`: what no text may show either, though it is no secret of the project. */
  constructor(open: (sealed: SealedSecret) => string, alwaysMasked: readonly string[] = []) {
    this.open = open;
    this.alwaysMasked = alwaysMasked;
  }

  replace(secrets: readonly SealedSecret[]): void {
    this.sealed = new Map(secrets.map((secret) => [secret.name, secret]));
    this.mask = undefined;
  }

  secrets(): SealedSecret[] {
    return [...this.sealed.values()];
  }

  value(name: string): string | undefined {
    const sealed = this.sealed.get(name);
    return sealed && this.opening(sealed);
  }

  /** Those of the names that are secrets, and which version each is of. */
  versions(names: Iterable<string>): Record<string, string> {
    const known = [...names].flatMap((name) => this.sealed.get(name) ?? []);
    return Object.fromEntries(known.map(({ name, version }) => [name, version]));
  }

  /** Masks what servers get from elsewhere, too. */
  learn(values: readonly string[]): void {
    for (const value of values) {
      if (!this.opened.delete(value)) this.mask = undefined;
      this.opened.add(value);
    }
  }

  /** The text with every secret in it masked, however it is written there. */
  redact(text: string): string {
    this.mask ??= this.maskOfAll();
    return this.mask.apply(text);
  }

  private maskOfAll(): Mask {
    const current = new Set(this.secrets().map((secret) => this.valueOrNothing(secret)));
    this.forgetOldest(current);
    return new Mask([...this.alwaysMasked, ...this.opened].flatMap(encodingsOf));
  }

  private forgetOldest(current: ReadonlySet<string>): void {
    const former = [...this.opened].filter((value) => !current.has(value)).reverse();
    let characters = 0;
    for (const [index, value] of former.entries()) {
      characters += value.length;
      if (index >= MAX_FORMER || characters > MAX_FORMER_CHARACTERS) this.opened.delete(value);
    }
  }

  /** What cannot be opened cannot have been given to anybody. */
  private valueOrNothing(secret: SealedSecret): string {
    try {
      return this.opening(secret);
    } catch {
      return '';
    }
  }

  private opening(sealed: SealedSecret): string {
    const value = this.open(sealed);
    this.opened.delete(value);
    this.opened.add(value);
    return value;
  }
}
