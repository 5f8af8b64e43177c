/** Collects items, and lets tests wait for future ones. */
export class Inbox<Item> {
  readonly items: Item[] = [];
  private readonly waiting = new Set<(item: Item) => void>();

  add(item: Item): void {
    this.items.push(item);
    for (const check of [...this.waiting]) check(item);
  }

  /** The first item, past or future, that fits. */
  first(fits: (item: Item) => boolean): Promise<Item> {
    const past = this.items.find(fits);
    return past === undefined ? this.next(fits) : Promise.resolve(past);
  }

  /** The first item from now on that fits. */
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

  /** As many items that fit as asked for, past ones included. */
  async several(count: number, fits: (item: Item) => boolean): Promise<Item[]> {
    while (this.items.filter(fits).length < count) await this.next(fits);
    return this.items.filter(fits).slice(0, count);
  }
}
