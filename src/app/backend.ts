import type { Backend } from '../api/backend.ts';
import type { StatusView } from '../api/views.ts';
import { callsBackend } from './backend/calls.ts';
import { chatsBackend } from './backend/chat.ts';
import type { Parts } from './backend/context.ts';
import { hostedBackend } from './backend/hosted.ts';
import { importsBackend } from './backend/imports.ts';
import { productsBackend } from './backend/products.ts';
import { projectsBackend } from './backend/projects.ts';
import { secretsBackend } from './backend/secrets.ts';
import { serversBackend } from './backend/servers.ts';
import { toolsBackend } from './backend/tools.ts';
import type { Followers } from './followers.ts';

/** What the API is answered with. */
export function createBackend(parts: Parts, followers: Followers, status: () => StatusView): Backend {
  return {
    projects: projectsBackend(parts),
    servers: serversBackend(parts),
    tools: toolsBackend(parts),
    secrets: secretsBackend(parts),
    products: productsBackend(parts),
    calls: callsBackend(parts),
    imports: importsBackend(parts),
    hosted: hostedBackend(parts),
    chats: chatsBackend(parts),
    status: async () => status(),
    subscribe: (project, listener) => followers.follow(parts.projects.get(project), listener),
  };
}
