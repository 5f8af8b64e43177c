import type { ResultContent } from './model.ts';
import type { ToolOutcome } from './toolbox.ts';

/** What a tool gave, as models take it, and no longer than so many characters. */
export function resultContent(_outcome: ToolOutcome, _maxCharacters: number): ResultContent[] {
  throw new Error('to be built');
}
