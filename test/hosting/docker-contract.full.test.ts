import { dockerContract } from './docker-contract.ts';

// The short suite covers gVisor.
dockerContract('docker');
