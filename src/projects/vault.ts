import type { SealedSecret } from '../store/secrets.ts';
import { encodingsOf } from './encodings.ts';
import { Mask } from './mask.ts';

/** How many changed or deleted values stay masked, and of how many characters in total. */
const MAX_FORMER = 1_000;
const MAX_FORMER_CHARACTERS = 1_000_000;

/** The secrets of one project, sealed until a server needs one or a text must be redacted. */
export class Vault {
  private readonly open: (sealed: SealedSecret) => string;
  private readonly alwaysMasked: readonly string[];
  private sealed = new Map<string, SealedSecret>();
  /** Newest last. Includes former values, because a server that was started with one may still print it. */
  private readonly opened = new Set<string>();
  private mask: Mask | undefined;

  /** `alwaysMasked`: values to mask that are not secrets of the project. */
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
    return sealed && this.openSealed(sealed);
  }

  versions(names: Iterable<string>): Record<string, string> {
    const known = [...names].flatMap((name) => this.sealed.get(name) ?? []);
    return Object.fromEntries(known.map(({ name, version }) => [name, version]));
  }

  /** Also masks values that servers get from other sources. */
  learn(values: readonly string[]): void {
    for (const value of values) {
      if (!this.opened.delete(value)) this.mask = undefined;
      this.opened.add(value);
    }
  }

  /** Masks every secret in all its encodings. */
  redact(text: string): string {
    this.mask ??= this.maskOfAll();
    return this.mask.apply(text);
  }

  private maskOfAll(): Mask {
    const current = new Set(this.secrets().map((secret) => this.valueOrEmpty(secret)));
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

  /** A value that cannot be opened was never given to a server. */
  private valueOrEmpty(secret: SealedSecret): string {
    try {
      return this.openSealed(secret);
    } catch {
      return '';
    }
  }

  private openSealed(sealed: SealedSecret): string {
    const value = this.open(sealed);
    this.opened.delete(value);
    this.opened.add(value);
    return value;
  }
}
