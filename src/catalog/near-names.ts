/** A name as it is listed, and as its server has it. */
interface Listed {
  own: string;
  listed: string;
}

const MAX_NEAR = 5;

/** Finds names that differ from a wrong one only in spelling, or in the server that they are of. */
export class NearNames {
  private readonly bySpelling = new Map<string, string[]>();
  private readonly separator: string;

  constructor(names: Iterable<Listed>, separator: string) {
    this.separator = separator;
    for (const { own, listed } of names) {
      this.add(own, listed);
      if (listed !== own) this.add(listed, listed);
    }
  }

  to(name: string): readonly string[] {
    const end = name.lastIndexOf(this.separator);
    const own = end === -1 ? name : name.slice(end + this.separator.length);
    return this.bySpelling.get(spelling(name)) ?? this.bySpelling.get(spelling(own)) ?? [];
  }

  private add(name: string, listed: string): void {
    const key = spelling(name);
    const same = this.bySpelling.get(key);
    if (same === undefined) this.bySpelling.set(key, [listed]);
    else if (same.length < MAX_NEAR && !same.includes(listed)) same.push(listed);
  }
}

/** What is left where nobody looks at capitals and signs. */
function spelling(name: string): string {
  return name.replace(/[^\p{L}\p{N}]/gu, '').toLowerCase() || name;
}
