import { it } from 'vitest';
import { loseNoChange } from './kills.ts';

it('keeps every acknowledged change, and no partial one, after many kills', () => loseNoChange(200, 8));
