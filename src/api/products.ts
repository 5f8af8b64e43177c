import type { LiveProject } from '../projects/live-project.ts';
import type { ProductRow } from '../store/products.ts';
import { created, noContent, ok } from './http/reply.ts';
import { type Route, route } from './http/route.ts';
import { newProductOf, productManifest } from './inputs.ts';
import { checkNames, movedSecrets, namesOf, rowOf } from './server-changes.ts';
import { applyChange, needDatabase } from './services.ts';
import { installation, type ProductView, productList } from './views.ts';

export const productRoutes: Route[] = [
  route('GET', '/projects/:project/products', {
    operationId: 'listProducts',
    summary: 'List the products installed in a project',
    action: 'operate',
    answers: { 200: productList },
    async handle({ services, project }) {
      const rows = await needDatabase(services).store.products.list(project.id);
      return ok({ products: rows.map((row) => productViewOf(project, row)) });
    },
  }),
  route('POST', '/projects/:project/products', {
    operationId: 'installProduct',
    summary: 'Install a product, or a different version of an installed one',
    action: 'operate',
    body: productManifest,
    answers: { 200: installation, 201: installation },
    async handle({ services, sender, project, params, body }) {
      const { servers, ...product } = newProductOf(body);
      checkNames(project, servers.map(namesOf));
      const reserved = project.listed.filter(({ row }) => row === undefined).map(({ name }) => name);
      const installed = await applyChange(services, sender, project, (store) =>
        store.products.install(project.id, { ...product, servers: servers.map(rowOf) }, reserved),
      );
      const { product: row, isNew, ...changes } = installed;
      const written = serversOf(project, row).map((listed) => listed.row!.config);
      const view = { product: productViewOf(project, row), ...changes, ...movedSecrets(servers, written) };
      return isNew ? created(view, 'projects', params.project, 'products', row.name) : ok(view);
    },
  }),
  route('DELETE', '/projects/:project/products/:product', {
    operationId: 'removeProduct',
    summary: 'Remove a product and its servers',
    action: 'operate',
    answers: { 204: null },
    async handle({ services, sender, project, params }) {
      await applyChange(services, sender, project, (store) =>
        store.products.remove(project.id, params.product),
      );
      return noContent;
    },
  }),
];

function serversOf(project: LiveProject, { id }: ProductRow) {
  return project.listed.filter(({ row }) => row?.product_id === id);
}

function productViewOf(project: LiveProject, row: ProductRow): ProductView {
  const { id, name, version, created_at, updated_at } = row;
  return {
    id,
    name,
    version,
    servers: serversOf(project, row).map((server) => server.name),
    created_at: created_at.toISOString(),
    updated_at: updated_at.toISOString(),
  };
}
