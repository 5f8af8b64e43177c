import { describe } from 'vitest';
import { runFeatures } from './run-features.ts';
import { type Cell, openSwitchboardScene } from './scene.ts';

const cells: Cell[] = [
  { client: 'legacy', server: 'legacy', transport: 'stdio' },
  { client: 'legacy', server: 'legacy', transport: 'http' },
  { client: 'legacy', server: 'modern', transport: 'stdio' },
  { client: 'legacy', server: 'modern', transport: 'http' },
];

describe.each(cells)('a $client client and a $server server over $transport, through Switchboard', (cell) => {
  runFeatures(cell.client, () => openSwitchboardScene(cell));
});
