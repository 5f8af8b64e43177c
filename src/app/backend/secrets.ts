import type { Backend } from '../../api/backend.ts';
import type { SecretView } from '../../api/views.ts';
import { variablesOf } from '../../config.ts';
import { SwitchboardError } from '../../errors.ts';
import { hostedVariables } from '../../projects/hosted-rows.ts';
import type { LiveProject } from '../../projects/live-project.ts';
import { change, needStored, type Parts } from './context.ts';

export function secretsBackend(parts: Parts): Backend['secrets'] {
  const { projects } = parts;
  return {
    async list(project) {
      const live = projects.get(project);
      needStored(parts);
      return viewsOf(live);
    },
    async put(project, name, value) {
      const live = projects.get(project);
      const { created } = await change(parts, live, (store) => store.secrets.put(live.id, name, value));
      return { isNew: created, view: find(live, name) };
    },
    async remove(project, name) {
      const live = projects.get(project);
      await change(parts, live, (store) => store.secrets.delete(live.id, name));
    },
    async rotate() {
      const { rotated, keyId } = await change(parts, undefined, (store) => store.secrets.rotate());
      return { rotated, key_id: keyId };
    },
  };
}

function viewsOf(live: LiveProject): SecretView[] {
  const uses = live.listed.map(({ name, config, hosted }) => ({
    name,
    variables: hosted === undefined ? variablesOf(config.transport) : hostedVariables(hosted),
  }));
  return live.vault.secrets().map(({ name, created_at, updated_at }) => ({
    name,
    created_at: created_at.toISOString(),
    updated_at: updated_at.toISOString(),
    used_by: uses.filter(({ variables }) => variables.has(name)).map((server) => server.name),
  }));
}

function find(live: LiveProject, name: string): SecretView {
  const found = viewsOf(live).find((secret) => secret.name === name);
  if (found !== undefined) return found;
  throw new SwitchboardError('not_found', `There is no secret "${name}" in project "${live.name}" any more.`);
}
