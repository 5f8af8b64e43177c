/** Collects items, and lets tests wait for future ones. */
export class Inbox<Item> {
  readonly items: Item[] = [];
  private readonly waiting = new Set<(item: Item) => void>();

  add(item: Item): void {
    this.items.push(item);
    for (const check of [...this.waiting]) check(item);
  }

  /** The first match, past or future. */
  first(fits: (item: Item) => boolean): Promise<Item> {
    const past = this.items.find(fits);
    return past === undefined ? this.next(fits) : Promise.resolve(past);
  }

  /** The first match from now on. */
  next(fits: (item: Item) => boolean): Promise<Item> {
    return new Promise((resolve) => {
      const check = (item: Item) => {
        if (!fits(item)) return;
        this.waiting.delete(check);
        resolve(item);
      };
      this.waiting.add(check);
    });
  }

  /** Includes past items. */
  async several(count: number, fits: (item: Item) => boolean): Promise<Item[]> {
    while (this.items.filter(fits).length < count) await this.next(fits);
    return this.items.filter(fits).slice(0, count);
  }
}
