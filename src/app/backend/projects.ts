import type { Backend } from '../../api/backend.ts';
import { defined } from '../../api/defined.ts';
import type { ProjectView } from '../../api/views.ts';
import { SwitchboardError } from '../../errors.ts';
import type { LiveProject } from '../../projects/live-project.ts';
import { change, type Parts } from './context.ts';

export function projectsBackend(parts: Parts): Backend['projects'] {
  const { projects } = parts;
  return {
    list: async () => projects.list().map(viewOf),
    get: async (project) => viewOf(projects.get(project)),
    async create({ description, ...input }) {
      const row = await change(parts, undefined, (store) =>
        store.projects.create({ ...defined(input), name: input.name, description: description ?? '' }),
      );
      return viewOf(projects.get(row.id));
    },
    async change(project, { description, ...changes }, ifVersion) {
      const live = projects.get(project);
      if (live.isDefault && changes.name !== undefined && changes.name !== live.name) {
        throw new SwitchboardError('read_only', 'The project "default" keeps its name: clients rely on it.');
      }
      const written = {
        ...defined(changes),
        ...(description === undefined ? {} : { description: description ?? '' }),
      };
      await change(parts, live, (store) => store.projects.change(live.id, written, ifVersion));
      return viewOf(projects.get(live.id));
    },
    async remove(project, ifVersion) {
      const live = projects.get(project);
      if (live.isDefault) {
        throw new SwitchboardError('read_only', 'The project "default" is always there: remove its servers.');
      }
      await change(parts, live, (store) => store.projects.delete(live.id, ifVersion));
    },
  };
}

function viewOf({ row, names, listed }: LiveProject): ProjectView {
  return {
    id: row.id,
    name: row.name,
    description: row.description || null,
    record_payloads: row.record_payloads,
    retention_days: row.retention_days,
    names,
    version: row.version,
    server_count: listed.length,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
  };
}
