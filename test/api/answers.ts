import { expect } from 'vitest';
import { innards } from './scene.ts';

/** A request that was made, and how it was answered. */
export interface Exchange {
  method: string;
  /** With its query, as it was sent. */
  path: string;
  status: number;
  text: string;
}

/** Whatever was asked, it is answered with nothing that is not for clients. */
export function checkAnswer({ method, path, status, text }: Exchange): void {
  const what = `${method} ${path}: ${status}, ${text.slice(0, 1_000)}`;
  expect(status, what).toBeLessThan(500);
  expect(innards.exec(text)?.[0], what).toBe(undefined);
}
