import { describe } from 'vitest';
import { runFeatures } from './run-features.ts';
import { type Cell, openDirectScene } from './scene.ts';

// The peers without Switchboard between them: the reference for their behaviour through it.
const cells: Cell[] = [
  { client: 'legacy', server: 'legacy', transport: 'stdio' },
  { client: 'legacy', server: 'legacy', transport: 'http' },
  { client: 'modern', server: 'modern', transport: 'stdio' },
  { client: 'modern', server: 'modern', transport: 'http' },
];

describe.each(cells)('a $client client and a $server server over $transport', (cell) => {
  runFeatures(cell.client, () => openDirectScene(cell));
});
