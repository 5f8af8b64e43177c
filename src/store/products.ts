import { isDeepStrictEqual } from 'node:util';
import type { Selectable } from 'kysely';
import { type Credentials, maskedManifest } from './credentials.ts';
import type { Changes, Database } from './database.ts';
import { checkPlaces, hostedAmong } from './places.ts';
import { notFound, requireProject } from './project-rows.ts';
import type { DB } from './schema.ts';
import {
  findServers,
  insertServer,
  type NewServer,
  namesTaken,
  requireDistinct,
  type ServerRow,
  updateServer,
} from './servers.ts';

export type ProductRow = Selectable<DB['products']>;

export interface NewProduct {
  name: string;
  version: string;
  manifest: Record<string, unknown>;
  servers: readonly NewServer[];
}

/** By server name. */
export interface InstalledProduct {
  product: ProductRow;
  isNew: boolean;
  added: string[];
  changed: string[];
  removed: string[];
  unchanged: string[];
}

export class ProductTable {
  private readonly database: Database;
  private readonly credentials: Credentials;

  constructor(database: Database, credentials: Credentials) {
    this.database = database;
    this.credentials = credentials;
  }

  list(projectId: string): Promise<ProductRow[]> {
    return this.database.run((queries) =>
      queries
        .selectFrom('products')
        .selectAll()
        .where('project_id', '=', projectId)
        .orderBy('name')
        .execute(),
    );
  }

  /** Installs or upgrades. `reserved` has the names of servers without a row. */
  install(projectId: string, input: NewProduct, reserved: readonly string[]): Promise<InstalledProduct> {
    return this.database.write(async (changes, audit) => {
      const project = await requireProject(changes, projectId);
      requireDistinct(input.servers);
      const installed = await findProduct(changes, projectId, input.name);
      const present = await findServers(changes, projectId, input.servers);
      const foreign = present.filter(({ product_id }) => product_id === null || product_id !== installed?.id);
      const names = input.servers.map(({ name }) => name);
      const others = new Set([
        ...reserved,
        ...foreign.map(({ name }) => name),
        ...(await hostedAmong(changes, projectId, names)),
      ]);
      const taken = names.filter((name) => others.has(name));
      if (taken.length > 0) throw namesTaken(taken, project);
      const written = await this.credentials.movedProduct(changes, audit, project, input);
      const product = await writeProduct(changes, projectId, written);
      const servers = await changeServers(changes, product, written.servers);
      await checkPlaces(changes, projectId, [...servers.added, ...servers.changed]);
      audit({
        ...{ action: 'product.install', project, subject: product.name },
        ...{ before: installed && shown(installed), after: { ...shown(product), servers } },
      });
      return { product, isNew: installed === undefined, ...servers };
    });
  }

  /** Returns the names of the servers that were removed with it. */
  remove(projectId: string, name: string): Promise<string[]> {
    return this.database.write(async (changes, audit) => {
      const project = await requireProject(changes, projectId);
      const product = await findProduct(changes, projectId, name);
      if (product === undefined) throw notFound('product', name, project.name);
      const servers = (await serversOf(changes, product)).map((server) => server.name);
      await changes.deleteFrom('products').where('id', '=', product.id).execute();
      audit({ action: 'product.remove', project, subject: name, before: { ...shown(product), servers } });
      return servers;
    });
  }
}

function findProduct(changes: Changes, projectId: string, name: string): Promise<ProductRow | undefined> {
  return changes
    .selectFrom('products')
    .selectAll()
    .where('project_id', '=', projectId)
    .where('name', '=', name)
    .forUpdate()
    .executeTakeFirst();
}

function writeProduct(
  changes: Changes,
  projectId: string,
  { name, version, manifest }: NewProduct,
): Promise<ProductRow> {
  return changes
    .insertInto('products')
    .values({ project_id: projectId, name, version, manifest })
    .onConflict((conflict) => conflict.columns(['project_id', 'name']).doUpdateSet({ version, manifest }))
    .returningAll()
    .executeTakeFirstOrThrow();
}

/** Servers that stay keep `enabled`, which is the user's choice. */
async function changeServers(
  changes: Changes,
  product: ProductRow,
  servers: readonly NewServer[],
): Promise<Pick<InstalledProduct, 'added' | 'changed' | 'removed' | 'unchanged'>> {
  const before = await serversOf(changes, product);
  const outcome = { added: [], changed: [], removed: [], unchanged: [] } as Record<string, string[]> &
    Pick<InstalledProduct, 'added' | 'changed' | 'removed' | 'unchanged'>;
  for (const { id, name } of before.filter((row) => !servers.some((server) => server.name === row.name))) {
    await changes.deleteFrom('project_mcp_servers').where('id', '=', id).execute();
    outcome.removed.push(name);
  }
  for (const server of servers) {
    const row = before.find(({ name }) => name === server.name);
    if (row === undefined) {
      await insertServer(changes, product.project_id, product.id, server);
      outcome.added.push(server.name);
    } else if (isSame(row, server)) {
      outcome.unchanged.push(server.name);
    } else {
      await updateServer(changes, row, { ...server, enabled: row.enabled });
      outcome.changed.push(server.name);
    }
  }
  return outcome;
}

function serversOf(changes: Changes, { id }: ProductRow): Promise<ServerRow[]> {
  return changes
    .selectFrom('project_mcp_servers')
    .selectAll()
    .where('product_id', '=', id)
    .orderBy('name')
    .forUpdate()
    .execute();
}

/** For the audit log. */
function shown({ id, name, version, manifest }: ProductRow): object {
  return { id, name, version, manifest: maskedManifest(manifest) };
}

function isSame(row: ServerRow, server: NewServer): boolean {
  const keys = ['description', 'transport', 'config', 'settings'] as const;
  // Compared as JSON, which drops undefined values.
  return keys.every((key) => isDeepStrictEqual(row[key], JSON.parse(JSON.stringify(server[key]))));
}
