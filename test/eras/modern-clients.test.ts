import { describe } from 'vitest';
import { runFeatures } from './run-features.ts';
import { type Cell, openSwitchboardScene } from './scene.ts';

const cells: Cell[] = [
  { client: 'modern', server: 'legacy', transport: 'stdio' },
  { client: 'modern', server: 'legacy', transport: 'http' },
  { client: 'modern', server: 'modern', transport: 'stdio' },
  { client: 'modern', server: 'modern', transport: 'http' },
];

describe.each(cells)('a $client client and a $server server over $transport, through Switchboard', (cell) => {
  runFeatures(cell.client, () => openSwitchboardScene(cell));
});
