import { expect } from 'vitest';
import { innards } from './scene.ts';

export interface Exchange {
  method: string;
  /** Includes the query, as sent. */
  path: string;
  status: number;
  text: string;
}

/** No response may contain internals. */
export function checkAnswer({ method, path, status, text }: Exchange): void {
  const what = `${method} ${path}: ${status}, ${text.slice(0, 1_000)}`;
  expect(status, what).toBeLessThan(500);
  expect(innards.exec(text)?.[0], what).toBe(undefined);
}
