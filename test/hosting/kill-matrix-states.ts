import { expect } from 'vitest';
import type { Scene, State, Table } from './kill-matrix-scene.ts';

const overRest = '503 server_unavailable';
const overMcp = '-32603 server_unavailable';
/** The errors of pending calls whose server is gone. */
export const unavailable = { 'docker-rest': overRest, 'docker-mcp': overMcp, 'gvisor-rest': overRest };
/** The same for queued calls, which use the other interface. */
export const unavailableInLine = { 'docker-rest': overMcp, 'docker-mcp': overRest, 'gvisor-rest': overMcp };

/** Every server has one container and one volume, calls work, and each stored line exists once. */
export async function expectAll(
  scene: Scene,
  same: Pick<State, 'restarts' | 'lastCrash' | 'isSameContainer'>,
): Promise<void> {
  const wanted = scene.names.map((name): [string, State] => {
    const kept = JSON.stringify(scene.keptBy(name));
    const calls = { overRest: kept, overMcp: kept };
    return [name, { ...same, ...calls, status: 'ready', containers: ['its own'], volumes: 1 }];
  });
  expect(await scene.states()).toEqual(Object.fromEntries(wanted));
  expect(await scene.hosting.containers()).toHaveLength(scene.names.length);
}

export function forNames<Value>(names: string[], value: Value): Table<Value> {
  return Object.fromEntries(names.map((name) => [name, value]));
}
