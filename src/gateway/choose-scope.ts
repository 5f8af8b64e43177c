import { SwitchboardError } from '../errors.ts';
import type { Message } from '../protocol/envelope.ts';
import type { Incoming } from './caller.ts';
import type { Scope, Scopes } from './scope.ts';

/**
 * What a request is about: the project that its address, its header or its `_meta` names, else what its client sees.
 * Where several of them say something, all must say the same.
 */
export function chooseScope(
  scopes: Scopes,
  usual: Scope,
  projects: Incoming['projects'],
  { projectId }: Message,
): Scope {
  if (projects === undefined && projectId === undefined) return usual;
  const names = [...(projects ?? []), ...(projectId === undefined ? [] : [projectId.value])];
  const named = names.map((name) => scopeNamed(scopes, name));
  const [chosen = usual] = named;
  const isOne = named.every((scope) => scope === chosen) && (usual === chosen || usual.project === undefined);
  if (isOne) return chosen;
  const all = new Set(usual.project === undefined ? names : [usual.project.name, ...names]);
  const list = [...all].map((name) => JSON.stringify(name)).join(' and ');
  throw new SwitchboardError('invalid_request', `The request names several projects: ${list}. Name one.`);
}

function scopeNamed(scopes: Scopes, name: string): Scope {
  const scope = scopes.of(name);
  if (scope === undefined) {
    throw new SwitchboardError('unknown_project', `There is no project ${JSON.stringify(name)}.`, {
      data: { project: name },
    });
  }
  return scope;
}
