import { isDeepStrictEqual } from 'node:util';
import { maskCredentials } from '../config/credentials.ts';
import { SwitchboardError } from '../errors.ts';
import type { Audit, Changes, Database } from './database.ts';
import { reasonOf } from './failure.ts';
import { type ProjectRow, requireProject } from './project-rows.ts';
import { MAX_VALUE_BYTES, type SecretTable } from './secrets.ts';

/**
 * Replaces credentials in a server's configuration with references. `keep` stores a secret and returns its name: `wanted`,
 * or a variant if that has another value. A default is stored only if its variable has no secret yet. Credentials for which
 * it returns undefined are unchanged.
 */
export type MoveCredentials = <Config extends object>(
  server: string,
  config: Config,
  keep: (wanted: string, value: string, isDefault: boolean) => string | undefined,
) => Config;

interface Named {
  name: string;
}

interface Product {
  manifest: Record<string, unknown>;
  servers: readonly (Named & { config: Record<string, unknown> })[];
}

/** Turns credentials of servers into secrets, in the transaction that writes the server's row. */
export class Credentials {
  private readonly secrets: SecretTable;
  private readonly move: MoveCredentials;

  constructor(secrets: SecretTable, move: MoveCredentials | undefined) {
    this.secrets = secrets;
    this.move = move ?? ((_server, config) => config);
  }

  /** Callers must hold the lock on the project's row. */
  async moved<Config extends object>(
    changes: Changes,
    audit: Audit,
    project: ProjectRow,
    servers: readonly (Named & { config: Config })[],
  ): Promise<Config[]> {
    if (!servers.some((server) => this.hasAny(server))) return servers.map(({ config }) => config);
    return this.moveInto(changes, audit, project, servers, tooLong);
  }

  /** Calls `refused` for each credential that is too long for a secret. */
  private async moveInto<Config extends object>(
    changes: Changes,
    audit: Audit,
    project: ProjectRow,
    servers: readonly (Named & { config: Config })[],
    refused: (server: string) => void,
  ): Promise<Config[]> {
    const chest = await this.secrets.chest(changes, audit, project);
    const configs = servers.map(({ name, config }) =>
      this.move(name, config, (wanted, value, isDefault) => {
        if (Buffer.byteLength(value) <= MAX_VALUE_BYTES) return chest.keep(wanted, value, isDefault);
        refused(name);
        return undefined;
      }),
    );
    await chest.write();
    return configs;
  }

  /** Also replaces credentials in the manifest, which contains the servers. */
  async movedProduct<Given extends Product>(
    changes: Changes,
    audit: Audit,
    project: ProjectRow,
    product: Given,
  ): Promise<Given> {
    const entries = entriesOf(product.manifest);
    const own = product.servers.map(({ name, config }) => ({ name, config }));
    const configs = await this.moved(changes, audit, project, [
      ...own,
      ...entries.map((entry) => ({ name: entry.name, config: entry })),
    ]);
    const servers = product.servers.map((server, index) => ({ ...server, config: configs[index]! }));
    return { ...product, servers, manifest: withEntries(product.manifest, configs.slice(own.length)) };
  }

  /**
   * Moves credentials that were stored before. Each project is a transaction; one that fails is retried at the next start.
   * If two processes run this at the same time, the second finds nothing left.
   */
  async moveStored(database: Database, warn: (message: string) => void): Promise<void> {
    const found = await database.run((queries) => this.findStored(queries as Changes));
    const projects = [...new Set(found.map(({ project_id }) => project_id))].toSorted();
    for (const id of projects) {
      try {
        const done = await database.write((changes, audit) => this.moveOf(changes, audit, id));
        if (done.moved.length > 0) {
          warn(
            `Plain-text credentials in the database were moved to secrets of project "${done.project}": those of ${done.moved.join(', ')}.`,
          );
        }
        for (const server of done.left) {
          warn(
            `The server "${server}" of project "${done.project}" has a plain-text credential in the database that is too long for a secret (${MAX_VALUE_BYTES} bytes at most). Put it into a file that only you can read, and let the server read that file.`,
          );
        }
      } catch (error) {
        const named = found.filter(({ project_id }) => project_id === id);
        const servers = [...new Set(named.map(({ name }) => name))].join(', ');
        warn(
          `Credentials of servers (${servers}; project ${id}) are in the database as plain text, and cannot be moved to secrets: ${reasonOf(error)}`,
        );
      }
    }
  }

  private async moveOf(
    changes: Changes,
    audit: Audit,
    id: string,
  ): Promise<{ project: string; moved: string[]; left: Set<string> }> {
    const project = await requireProject(changes, id);
    const found = await this.findStored(changes, id);
    const left = new Set<string>();
    const moved = new Set<string>();
    const configs = await this.moveInto(changes, audit, project, found, (server) => left.add(server));
    for (const [index, { table, id: row, name, config: before }] of found.entries()) {
      const config = configs[index]!;
      if (isDeepStrictEqual(config, before)) continue;
      moved.add(name);
      if (table === 'products') {
        const { manifest } = await changes
          .selectFrom(table)
          .select('manifest')
          .where('id', '=', row)
          .executeTakeFirstOrThrow();
        const entries = entriesOf(manifest).map((entry) => (entry.name === config.name ? config : entry));
        await changes
          .updateTable(table)
          .set({ manifest: withEntries(manifest, entries) })
          .where('id', '=', row)
          .execute();
      } else if (table === 'agent_workspaces') {
        await changes.updateTable(table).set({ mcp_config: config }).where('id', '=', row).execute();
      } else {
        await changes.updateTable(table).set({ config }).where('id', '=', row).execute();
      }
    }
    return { project: project.name, moved: [...moved], left };
  }

  private async findStored(changes: Changes, projectId?: string) {
    const isOf = <Row extends { project_id: string | null }>({ project_id }: Row) =>
      project_id !== null && (projectId === undefined || project_id === projectId);
    const servers = await changes
      .selectFrom('project_mcp_servers')
      .select(['id', 'project_id', 'name', 'config'])
      .orderBy('name')
      .execute();
    const hosted = await changes
      .selectFrom('agent_workspaces')
      .select(['id', 'project_id', 'name', 'mcp_config as config'])
      .where('container_type', '=', 'mcp_server')
      .orderBy('name')
      .execute();
    const products = await changes.selectFrom('products').select(['id', 'project_id', 'manifest']).execute();
    const entries = products.flatMap(({ id, project_id, manifest }) =>
      entriesOf(manifest).map((entry) => ({ id, project_id, name: entry.name, config: entry })),
    );
    const all = [
      ...servers.map((row) => ({ ...row, table: 'project_mcp_servers' as const })),
      ...hosted.map((row) => ({ ...row, table: 'agent_workspaces' as const })),
      ...entries.map((row) => ({ ...row, table: 'products' as const })),
    ];
    return all.filter(isOf).flatMap((row) => {
      const config = row.config as Record<string, unknown>;
      return this.hasAny({ name: row.name, config }) ? [{ ...row, config }] : [];
    });
  }

  private hasAny({ name, config }: Named & { config: object }): boolean {
    let isFound = false;
    this.move(name, config, (wanted) => {
      isFound = true;
      return wanted;
    });
    return isFound;
  }
}

function tooLong(server: string): never {
  throw new SwitchboardError(
    'invalid_input',
    `The server "${server}" has a credential in its configuration that is too long for a secret (${MAX_VALUE_BYTES} bytes at most). Put it into a file that only you can read, and let the server read that file.`,
  );
}

/** For the audit log. */
export function maskedManifest(manifest: Record<string, unknown>): Record<string, unknown> {
  return withEntries(manifest, entriesOf(manifest).map(maskCredentials));
}

/** Rows may hold anything. */
function entriesOf(manifest: unknown): (Record<string, unknown> & Named)[] {
  const servers = (manifest as { mcp?: { servers?: unknown } } | null)?.mcp?.servers;
  return Array.isArray(servers) ? servers.filter((entry) => typeof entry?.name === 'string') : [];
}

function withEntries(manifest: Record<string, unknown>, servers: object[]): Record<string, unknown> {
  if (servers.length === 0) return manifest;
  return { ...manifest, mcp: { ...(manifest.mcp as object), servers } };
}
