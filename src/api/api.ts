import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Principal, Sender } from '../identity/principal.ts';
import { sendError } from './http/reply.ts';
import type { Router } from './http/router.ts';
import type { Services } from './services.ts';

export interface Api {
  handle(request: IncomingMessage, response: ServerResponse, sender: Sender): void;
  /** Responds to a request that the caller rejects. */
  refuse(
    request: IncomingMessage,
    response: ServerResponse,
    error: unknown,
    headers?: Record<string, string>,
  ): void;
  /** Ends the event streams of a principal that was revoked, removed or has expired. */
  endPrincipal(principal: Principal): void;
  /** Ends what the principal may no longer have. */
  permissionsChanged(principal: Principal): void;
  /** Ends the event streams of a principal; it may open them again. */
  endStreams(principal: Principal): void;
  /** Ends the open event streams. */
  close(): void;
}

/**
 * The REST API. Its modules load with the first request, because most processes get none. `onFault` gets errors that
 * clients must not see.
 */
export function createApi(services: Services, onFault: (thrown: unknown) => void = () => {}): Api {
  let router: Router | undefined;
  let loading: Promise<Router> | undefined;
  let isClosed = false;

  async function load(): Promise<Router> {
    const { Router } = await import('./http/router.ts');
    router = new Router(services, onFault);
    if (isClosed) router.close();
    return router;
  }

  return {
    handle(request, response, sender) {
      if (router !== undefined) {
        void router.handle(request, response, sender);
        return;
      }
      loading ??= load();
      loading.then(
        (loaded) => void loaded.handle(request, response, sender),
        (thrown: unknown) => {
          onFault(thrown);
          response.destroy();
        },
      );
    },
    refuse({ method }, response, error, headers) {
      sendError(response, error, method === 'HEAD', headers);
    },
    endPrincipal(principal) {
      router?.endPrincipal(principal);
    },
    permissionsChanged(principal) {
      router?.permissionsChanged(principal);
      services.database?.chats.permissionsChanged(principal);
    },
    endStreams(principal) {
      router?.endStreams(principal);
    },
    close() {
      isClosed = true;
      router?.close();
    },
  };
}
