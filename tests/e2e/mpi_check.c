/* What tests/e2e runs by mpirun: a ping-pong between ranks 0 and 1, then an all-reduce over all.
   Rank 0 prints the seconds of each, and an element of the sum. */
#include <mpi.h>
#include <stdio.h>

enum { rounds = 5, elements = 1 << 14 };

static double values[elements];

static double ping_pong(int rank) {
  const double begun = MPI_Wtime();
  for (int i = 0; i < rounds; ++i) {
    char byte = (char)i;
    if (rank == 0) {
      MPI_Send(&byte, 1, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
      MPI_Recv(&byte, 1, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
      MPI_Recv(&byte, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(&byte, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    }
  }
  return (MPI_Wtime() - begun) / rounds;
}

int main(int argc, char** argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Barrier(MPI_COMM_WORLD);
  const double there_and_back = ping_pong(rank);
  for (int i = 0; i < elements; ++i) values[i] = rank + 1;
  MPI_Barrier(MPI_COMM_WORLD);
  const double begun = MPI_Wtime();
  MPI_Allreduce(MPI_IN_PLACE, values, elements, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  const double reduce = MPI_Wtime() - begun;
  if (rank == 0)
    printf("\nranks %d ping-pong %.6f all-reduce %.6f sum %g\n", size, there_and_back, reduce,
           values[elements - 1]);
  MPI_Finalize();
  return 0;
}
