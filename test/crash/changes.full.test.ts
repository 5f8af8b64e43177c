import { it } from 'vitest';
import { loseNoChange } from './kills.ts';

it('keeps every acknowledged change, and none by half, however often it is killed', () =>
  loseNoChange(200, 8));
