import { describe } from 'vitest';
import { runFeatures } from './run-features.ts';
import { type Cell, openDirectScene } from './scene.ts';

// What the peers do without Switchboard between them: the measure for what they must do with it.
const cells: Cell[] = [
  { client: 'legacy', server: 'legacy', transport: 'stdio' },
  { client: 'legacy', server: 'legacy', transport: 'http' },
  { client: 'modern', server: 'modern', transport: 'stdio' },
  { client: 'modern', server: 'modern', transport: 'http' },
];

describe.each(cells)('a $client client and a $server server over $transport', (cell) => {
  runFeatures(cell.client, () => openDirectScene(cell));
});
