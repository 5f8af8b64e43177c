import type { Message } from '../../protocol/message.ts';
import { nameOf } from '../legacy/greeting.ts';

const MAX_NAMES = 1_000;
const LONGEST_TEXT = 1_000;

/** What clients call themselves. They send the same words with every request, which need not be read every time. */
export class ClientNames {
  private readonly byText = new Map<string, string>();

  of({ bytes, claims }: Message): string {
    const claim = claims?.clientInfo;
    if (claim === undefined) return '';
    const text = bytes.toString('utf8', claim.value.start, claim.value.end);
    let name = this.byText.get(text);
    if (name === undefined) {
      name = nameOf(JSON.parse(text));
      if (text.length > LONGEST_TEXT) return name;
      if (this.byText.size >= MAX_NAMES) this.byText.clear();
      this.byText.set(text, name);
    }
    return name;
  }
}
