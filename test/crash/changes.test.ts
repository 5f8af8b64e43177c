import { it } from 'vitest';
import { loseNoChange } from './kills.ts';

it('keeps every acknowledged change, and none by half, when it is killed', () => loseNoChange(16, 1));
