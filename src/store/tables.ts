import { AccessTable } from './access.ts';
import { AuditTable } from './audit.ts';
import { CallTable } from './calls.ts';
import { Credentials, type MoveCredentials } from './credentials.ts';
import type { Database } from './database.ts';
import type { Keyring } from './keyring.ts';
import { ProductTable } from './products.ts';
import { ProjectTable } from './projects.ts';
import { RunTable } from './runs.ts';
import { SecretTable } from './secrets.ts';
import { ServerTable } from './servers.ts';
import { WorkspaceTable } from './workspaces.ts';

/** The tables as one actor uses them. */
export class Tables {
  readonly projects: ProjectTable;
  readonly servers: ServerTable;
  readonly hosted: WorkspaceTable;
  readonly products: ProductTable;
  readonly secrets: SecretTable;
  readonly access: AccessTable;
  readonly audit: AuditTable;
  readonly calls: CallTable;
  readonly runs: RunTable;
  readonly credentials: Credentials;

  constructor(database: Database, keyring: Keyring, moveCredentials: MoveCredentials | undefined) {
    this.secrets = new SecretTable(database, keyring);
    this.credentials = new Credentials(this.secrets, moveCredentials);
    this.projects = new ProjectTable(database);
    this.servers = new ServerTable(database, this.credentials);
    this.hosted = new WorkspaceTable(database, this.credentials);
    this.products = new ProductTable(database, this.credentials);
    this.access = new AccessTable(database);
    this.audit = new AuditTable(database);
    this.calls = new CallTable(database);
    this.runs = new RunTable(database);
  }
}
