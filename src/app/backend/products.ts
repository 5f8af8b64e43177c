import type { Backend } from '../../api/backend.ts';
import type { ProductView } from '../../api/views.ts';
import type { LiveProject } from '../../projects/live-project.ts';
import type { ProductRow } from '../../store/products.ts';
import { change, needStored, type Parts } from './context.ts';
import { movedSecrets } from './moved-secrets.ts';
import { checkNames } from './name-clashes.ts';
import { namesOf, stored } from './servers.ts';

export function productsBackend(parts: Parts): Backend['products'] {
  const { projects } = parts;
  return {
    async list(project) {
      const live = projects.get(project);
      const rows = await needStored(parts).store.products.list(live.id);
      return rows.map((row) => viewOf(live, row));
    },
    async install(project, { servers, ...product }) {
      const live = projects.get(project);
      checkNames(live, servers.map(namesOf));
      const reserved = live.listed.filter(({ row }) => row === undefined).map(({ name }) => name);
      const installed = await change(parts, live, (store) =>
        store.products.install(live.id, { ...product, servers: servers.map(stored) }, reserved),
      );
      const { product: row, isNew, added, changed, removed, unchanged } = installed;
      const written = live.listed.filter((listed) => listed.row?.product_id === row.id);
      const moved = movedSecrets(
        servers,
        written.map((listed) => listed.row!.config),
      );
      return { isNew, view: { product: viewOf(live, row), added, changed, removed, unchanged, ...moved } };
    },
    async remove(project, name) {
      const live = projects.get(project);
      await change(parts, live, (store) => store.products.remove(live.id, name));
    },
  };
}

function viewOf(live: LiveProject, { id, name, version, created_at, updated_at }: ProductRow): ProductView {
  return {
    id,
    name,
    version,
    servers: live.listed.filter(({ row }) => row?.product_id === id).map((server) => server.name),
    created_at: created_at.toISOString(),
    updated_at: updated_at.toISOString(),
  };
}
