import type { SealedSecret } from '../store/types.ts';

/** Shorter values would stand in too many words that are no secrets. */
const SHORTEST_REDACTED = 4;
const MASK = '***';

/** The secrets of one project. They stay sealed until a server needs one, or a text might show one. */
export class Vault {
  private readonly open: (sealed: SealedSecret) => string;
  private sealed = new Map<string, SealedSecret>();
  private pattern: RegExp | undefined;

  constructor(open: (sealed: SealedSecret) => string) {
    this.open = open;
  }

  replace(secrets: readonly SealedSecret[]): void {
    this.sealed = new Map(secrets.map((secret) => [secret.name, secret]));
    this.pattern = undefined;
  }

  secrets(): SealedSecret[] {
    return [...this.sealed.values()];
  }

  value(name: string): string | undefined {
    const sealed = this.sealed.get(name);
    return sealed && this.open(sealed);
  }

  /** Those of the names that are secrets, and which version each is of. */
  versions(names: Iterable<string>): Record<string, string> {
    const known = [...names].flatMap((name) => this.sealed.get(name) ?? []);
    return Object.fromEntries(known.map(({ name, version }) => [name, version]));
  }

  /** The text with every secret in it masked, however it is written there. */
  redact(text: string): string {
    if (this.sealed.size === 0) return text;
    this.pattern ??= this.anySecret();
    return text.replace(this.pattern, MASK);
  }

  private anySecret(): RegExp {
    const spellings = new Set(this.secrets().flatMap((secret) => this.spellings(secret)));
    // Of two that begin alike the longer one is to go as a whole.
    const longestFirst = [...spellings].toSorted((left, right) => right.length - left.length);
    return new RegExp(longestFirst.map((value) => RegExp.escape(value)).join('|') || '(?!)', 'g');
  }

  /** As it is, and as it stands in JSON, in URLs and in a Basic header. */
  private spellings(secret: SealedSecret): string[] {
    const value = this.valueOrNothing(secret);
    if (value.length < SHORTEST_REDACTED) return [];
    return [
      value,
      JSON.stringify(value).slice(1, -1),
      encodeURI(value.toWellFormed()),
      encodeURIComponent(value.toWellFormed()),
      ...value.split(/\r?\n/).filter((line) => line.length >= 2 * SHORTEST_REDACTED),
    ];
  }

  /** What cannot be opened cannot have been given to anybody. */
  private valueOrNothing(secret: SealedSecret): string {
    try {
      return this.open(secret);
    } catch {
      return '';
    }
  }
}
