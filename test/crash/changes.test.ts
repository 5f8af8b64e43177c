import { it } from 'vitest';
import { loseNoChange } from './kills.ts';

it('keeps every acknowledged change, and no partial one, after a kill', () => loseNoChange(16, 1));
